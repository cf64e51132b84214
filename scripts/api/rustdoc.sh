#!/usr/bin/env bash
# rustdoc of the pinned toolchain, which may do what is not stable yet. For rustdoc alone: cargo would build everything anew for
# such a compiler.
RUSTC_BOOTSTRAP=1 exec rustdoc "$@"
