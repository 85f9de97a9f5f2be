# The daemon, as charts/multikueued runs it: read-only, as nobody, configured by a file.
# What goes in is named by its hash: packages by requirements.lock, whose first lines say how it is made, and Python by
# --build-arg PYTHON_IMAGE=python:3.11-slim@sha256:..., for which there is no default.
ARG PYTHON_IMAGE
FROM ${PYTHON_IMAGE} AS build
ARG PYTHON_IMAGE
RUN case "$PYTHON_IMAGE" in *@sha256:*) ;; *) echo "PYTHON_IMAGE has no digest: $PYTHON_IMAGE" >&2; exit 1 ;; esac
COPY . /source
WORKDIR /source
RUN python -m venv /build \
    && /build/bin/pip install --no-cache-dir --require-hashes -r requirements-build.lock \
    && /build/bin/pip wheel --no-cache-dir --no-build-isolation --no-deps --wheel-dir /wheels .
RUN python -m venv /opt/multikueue \
    && /opt/multikueue/bin/pip install --no-cache-dir --require-hashes -r requirements.lock \
    && /opt/multikueue/bin/pip install --no-cache-dir --no-index --no-deps /wheels/*.whl

FROM ${PYTHON_IMAGE}
COPY --from=build /opt/multikueue /opt/multikueue
ENV PYTHONDONTWRITEBYTECODE=1
USER 65532:65532
ENTRYPOINT ["/opt/multikueue/bin/multikueue"]
CMD ["run"]
