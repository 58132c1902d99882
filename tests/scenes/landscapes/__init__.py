"""Landscapes with known truth, and scores of what is concluded from them."""

from .scenes import SCENES, Scene, scene

__all__ = ["SCENES", "Scene", "scene"]
