"""Bodies in protobuf, as kubectl and Go clients send them for builtin kinds."""

from __future__ import annotations

from multikueue.sandbox.apiserver.protobuf.decoding import CONTENT_TYPE, decode_protobuf
from multikueue.sandbox.apiserver.protobuf.wire import ProtobufError

__all__ = ["CONTENT_TYPE", "ProtobufError", "decode_protobuf"]
