// execution: a CUDA thread block on one CPU thread, for tests of the kernels.
//
// Threads   fibers: one runs until it waits at a barrier or for the other lanes of its warp, then
//           the next one that can run goes on. Two schedules (Schedule in machine.py): threads in
//           rising order with asynchronous copies as late as they may be, or in falling order with
//           copies at once. A missing barrier or wait gives another result in one of them.
// Barriers  `__syncthreads` waits for all threads that have not ended; threads that wait at
//           different lines are an error.
// Warps     shuffles, votes, ldmatrix and mma wait for all lanes of their mask. Lanes that have
//           ended, or meet in different instructions, are an error.
// Shared    filled with 0xA5 before each block. Dynamic shared memory begins 48 bytes beyond a
//           multiple of 1 024, as no kernel may count on more than 16; what is written behind its
//           end is an error. Arrays of fixed size are static variables in a section of their own.

#pragma once

#include <csetjmp>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <sys/mman.h>
#include <ucontext.h>
#include <utility>
#include <vector>

struct uint3 { unsigned x, y, z; };
typedef uint3 dim3;
static uint3 threadIdx, blockIdx;
static dim3 blockDim, gridDim;

extern char __start_simt_shared[] __attribute__((weak, visibility("hidden")));
extern char __stop_simt_shared[] __attribute__((weak, visibility("hidden")));

namespace simt {

constexpr int MOST_THREADS = 1024, WARP = 32, STACK_BYTES = 1 << 18;
constexpr int SHARED_BYTES = 256 << 10, SHARED_AT = 1024 + 48, GUARD_BYTES = 4096;
constexpr unsigned char UNSET = 0xA5;

struct Copy {
    char* to;
    const void* from;
    int group;
};
enum State { READY, AT_BARRIER, IN_WARP, ENDED };
struct Thread {
    jmp_buf where;
    ucontext_t start;
    bool started = false;
    State state = ENDED;
    int line = 0, groups = 0;  // line of its barrier; groups of copies committed
    std::vector<Copy> copies;  // not made yet
};

// Lanes of a warp that wait for each other.
typedef void (*Perform)(void* const* operands, unsigned mask);
struct Meeting {
    const char* name = nullptr;
    Perform perform = nullptr;
    unsigned mask = 0, arrived = 0;
    void* operands[WARP];
};

struct Block {
    Thread threads[MOST_THREADS];
    Meeting warps[MOST_THREADS / WARP];
    char* stacks = nullptr;
    int n_threads = 0, current = 0, alive = 0, arrived = 0;
    int direction = 1;       // -1: threads and blocks in falling order
    bool late = true;        // copies as late as they may be
    std::size_t shared_bytes = 0;
    void (*kernel)() = nullptr;
    jmp_buf host;
    char message[512] = "";
};
static Block block;
alignas(1024) static char arena[SHARED_AT + SHARED_BYTES + GUARD_BYTES];

inline char* dynamic_shared() { return arena + SHARED_AT; }

// Ends the launch with a message. The fibers are left as they are and started again by the next.
template <class... A>
[[noreturn]] void fail(const char* format, A... values) {
    int n = std::snprintf(block.message, sizeof block.message, "block (%u, %u, %u), thread %d: ",
                          blockIdx.x, blockIdx.y, blockIdx.z, block.current);
    std::snprintf(block.message + n, sizeof block.message - n, format, values...);
    _longjmp(block.host, 1);
}

inline void make_copies(Thread& thread, int group) {
    std::size_t kept = 0;
    for (const Copy& copy : thread.copies)
        if (copy.group < group) std::memcpy(copy.to, copy.from, 16);
        else thread.copies[kept++] = copy;
    thread.copies.resize(kept);
}

inline void enter_fiber();

// Goes on with the next thread that can run; back to the host if all have ended.
[[noreturn]] inline void run_next() {
    for (int i = 1, at = block.current; i <= block.n_threads; ++i) {
        at += block.direction;
        at = at < 0 ? block.n_threads - 1 : at == block.n_threads ? 0 : at;
        Thread& thread = block.threads[at];
        if (thread.state != READY) continue;
        block.current = at;
        const unsigned row = at / blockDim.x;
        threadIdx = {at % blockDim.x, row % blockDim.y, row / blockDim.y};
        if (thread.started) _longjmp(thread.where, 1);
        thread.started = true;
        getcontext(&thread.start);
        thread.start.uc_stack.ss_sp = block.stacks + (std::size_t)at * STACK_BYTES;
        thread.start.uc_stack.ss_size = STACK_BYTES;
        thread.start.uc_link = nullptr;
        makecontext(&thread.start, enter_fiber, 0);
        setcontext(&thread.start);
    }
    if (block.alive)
        fail("%d threads wait for ever, %d of them at the barrier of line %d", block.alive,
             block.arrived, block.threads[block.current].line);
    _longjmp(block.host, 2);
}

// Lets others run until this thread is ready again.
__attribute__((noinline)) inline void pause_thread() {
    if (_setjmp(block.threads[block.current].where) == 0) run_next();
}

// Whether all threads that are left have arrived at the barrier; they go on then.
inline bool open_barrier() {
    if (!block.arrived || block.arrived < block.alive) return false;
    int line = 0;
    for (int i = 0; i < block.n_threads; ++i) {
        Thread& thread = block.threads[i];
        if (thread.state != AT_BARRIER) continue;
        if (line && line != thread.line)
            fail("threads wait at different barriers, lines %d and %d", line, thread.line);
        line = thread.line;
        thread.state = READY;
    }
    block.arrived = 0;
    return true;
}

inline void enter_fiber() {
    for (;;) {
        block.kernel();
        Thread& own = block.threads[block.current];
        const Meeting& warp = block.warps[block.current / WARP];
        if (warp.arrived && (warp.mask >> block.current % WARP & 1))
            fail("it ends while its warp waits for it in %s", warp.name);
        make_copies(own, 1 << 30);
        own.state = ENDED;
        --block.alive;
        open_barrier();
        pause_thread();  // the next block starts here
    }
}

__attribute__((noinline)) inline void sync_block(int line) {
    Thread& own = block.threads[block.current];
    own.state = AT_BARRIER;
    own.line = line;
    ++block.arrived;
    if (!open_barrier()) pause_thread();
}

// Waits for all lanes of `mask`; the last to arrive performs the instruction for all of them.
__attribute__((noinline)) inline void meet(const char* name, unsigned mask, void* operand,
                                           Perform perform) {
    const int own = block.current, lane = own % WARP, first = own - lane;
    Meeting& warp = block.warps[own / WARP];
    if (!(mask >> lane & 1)) fail("%s: its mask %08x lacks the lane itself", name, mask);
    if (!warp.arrived) {
        warp.name = name;
        warp.perform = perform;
        warp.mask = mask;
        for (int i = 0; i < WARP; ++i)
            if ((mask >> i & 1) &&
                (first + i >= block.n_threads || block.threads[first + i].state == ENDED))
                fail("%s: lane %d of its mask has ended", name, i);
    } else if (warp.perform != perform || warp.mask != mask) {
        fail("lanes of a warp meet in %s and %s, or with different masks", warp.name, name);
    }
    warp.arrived |= 1u << lane;
    warp.operands[lane] = operand;
    block.threads[own].state = IN_WARP;
    if (warp.arrived != mask) {
        pause_thread();
        return;
    }
    for (int i = 0; i < WARP; ++i)
        if (mask >> i & 1) block.threads[first + i].state = READY;
    warp.arrived = 0;
    perform(warp.operands, mask);
}

// 32-bit address of shared memory and back; `bytes` from it must lie inside.
inline unsigned address_of(const void* pointer) {
    const std::ptrdiff_t at = static_cast<const char*>(pointer) - arena;
    if (at < SHARED_AT || at > (std::ptrdiff_t)(SHARED_AT + block.shared_bytes))
        fail("a pointer that is not to dynamic shared memory");
    return (unsigned)at;
}
inline char* shared_at(unsigned address, unsigned bytes) {
    if (address % bytes) fail("shared address %u is not a multiple of %u", address, bytes);
    if (address < SHARED_AT || address + bytes > SHARED_AT + block.shared_bytes)
        fail("shared address %u is outside of the %zu bytes of this launch", address - SHARED_AT,
             block.shared_bytes);
    return arena + address;
}

inline void run_block() {
    std::memset(arena + SHARED_AT, UNSET, block.shared_bytes + GUARD_BYTES);
    if (__start_simt_shared)
        std::memset(__start_simt_shared, UNSET, __stop_simt_shared - __start_simt_shared);
    block.alive = block.n_threads;
    block.arrived = 0;
    for (Meeting& warp : block.warps) warp.arrived = 0;
    for (int i = 0; i < block.n_threads; ++i) {
        block.threads[i].state = READY;
        block.threads[i].groups = 0;
        block.threads[i].copies.clear();
    }
    block.current = block.direction > 0 ? block.n_threads - 1 : 0;
    const int left = _setjmp(block.host);
    if (left == 0) run_next();
    if (left == 1) {
        for (Thread& thread : block.threads) thread.started = false;
        return;
    }
    const char* guard = arena + SHARED_AT + block.shared_bytes;
    for (int i = 0; i < GUARD_BYTES; ++i)
        if ((unsigned char)guard[i] != UNSET) {
            std::snprintf(block.message, sizeof block.message,
                          "block (%u, %u, %u) wrote %d bytes behind its shared memory", blockIdx.x,
                          blockIdx.y, blockIdx.z, i);
            return;
        }
}

// Sizes and kinds of a kernel's parameters, and a call with pointers to them.
template <class T>
constexpr char kind_of() {
    return std::is_pointer<T>::value ? 'p' : std::is_floating_point<T>::value ? 'f'
         : std::is_integral<T>::value ? 'i' : 's';
}
template <class>
struct Kernel;
template <class... A>
struct Kernel<void (*)(A...)> {
    static inline void (*function)(A...) = nullptr;
    static inline void** arguments = nullptr;

    template <std::size_t... I>
    static void call(std::index_sequence<I...>) {
        function(*static_cast<std::remove_cv_t<A>*>(arguments[I])...);
    }
    static void run_thread() { call(std::index_sequence_for<A...>()); }
    static void describe(int* sizes, char* kinds) {
        const int all[] = {(int)sizeof(A)..., 0};
        const char each[] = {kind_of<A>()..., 0};
        std::memcpy(sizes, all, sizeof all);
        std::memcpy(kinds, each, sizeof each);
    }
};

struct Launch {
    unsigned grid[3], threads[3];
    unsigned long long shared_bytes;
    int backward;
};

template <class F>
const char* launch(F function, void** arguments, const Launch& given) {
    Kernel<F>::function = function;
    Kernel<F>::arguments = arguments;
    block.kernel = Kernel<F>::run_thread;
    block.message[0] = 0;
    if (!block.stacks)
        block.stacks = static_cast<char*>(mmap(nullptr, (std::size_t)MOST_THREADS * STACK_BYTES,
                                               PROT_READ | PROT_WRITE,
                                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    gridDim = {given.grid[0], given.grid[1], given.grid[2]};
    blockDim = {given.threads[0], given.threads[1], given.threads[2]};
    block.n_threads = (int)(blockDim.x * blockDim.y * blockDim.z);
    block.shared_bytes = given.shared_bytes;
    block.direction = given.backward ? -1 : 1;
    block.late = !given.backward;
    const unsigned long long n = 1ull * gridDim.x * gridDim.y * gridDim.z;
    for (unsigned long long i = 0; i < n && !block.message[0]; ++i) {
        const unsigned long long at = given.backward ? n - 1 - i : i;
        blockIdx = {(unsigned)(at % gridDim.x), (unsigned)(at / gridDim.x % gridDim.y),
                    (unsigned)(at / gridDim.x / gridDim.y)};
        run_block();
    }
    return block.message;
}

}  // namespace simt

#define SIMT_KERNEL(NAME, MOST)                                                                  \
    extern "C" const char* simt_launch_##NAME(void** arguments, const simt::Launch* given) {     \
        return simt::launch(&NAME, arguments, *given);                                           \
    }                                                                                            \
    extern "C" int simt_describe_##NAME(int* sizes, char* kinds) {                               \
        simt::Kernel<decltype(&NAME)>::describe(sizes, kinds);                                   \
        return MOST;                                                                             \
    }
