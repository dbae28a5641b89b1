"""Timed measurements, each printing ratios that were taken in one run. Never part of the tests."""
