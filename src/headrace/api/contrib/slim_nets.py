"""``tf.contrib.slim.nets``."""

from headrace.api.hosting import hosted_getattr

__all__: list[str] = []

__getattr__ = hosted_getattr(
    "contrib.slim.nets",
    __name__,
    [],
    {
        "alexnet": "tf_slim.nets.alexnet",
        "inception": "headrace.api.contrib.slim_inception",
        "inception_v1": "tf_slim.nets.inception_v1",
        "inception_v2": "tf_slim.nets.inception_v2",
        "inception_v3": "tf_slim.nets.inception_v3",
        "overfeat": "tf_slim.nets.overfeat",
        "resnet_utils": "tf_slim.nets.resnet_utils",
        "resnet_v1": "tf_slim.nets.resnet_v1",
        "resnet_v2": "tf_slim.nets.resnet_v2",
        "vgg": "tf_slim.nets.vgg",
    },
)
