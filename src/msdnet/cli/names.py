"""What a shell completes the name of a model or a network to."""

__all__ = ["complete_models", "complete_networks"]


def complete_models(incomplete: str) -> list[str]:
    from msdnet.models import model_names

    return [name for name in model_names() if name.startswith(incomplete)]


def complete_networks(incomplete: str) -> list[str]:
    """Presets, and models as well."""
    from msdnet.presets import PRESETS

    return [name for name in PRESETS if name.startswith(incomplete)] + complete_models(incomplete)
