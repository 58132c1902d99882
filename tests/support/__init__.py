"""What tests, benches and documents share: studies, runs, browsers, cards, readers of pages."""
