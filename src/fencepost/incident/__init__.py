"""October 2025 as it was: its own planner, enactors, plan trees and lock, which live here and nowhere else."""
