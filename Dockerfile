# The daemon, as charts/multikueued runs it: read-only, as nobody, configured by a file.
FROM python:3.11-slim AS build
COPY . /source
RUN python -m venv /opt/multikueue && /opt/multikueue/bin/pip install --no-cache-dir '/source[uvloop]'

FROM python:3.11-slim
COPY --from=build /opt/multikueue /opt/multikueue
ENV PYTHONDONTWRITEBYTECODE=1
USER 65532:65532
ENTRYPOINT ["/opt/multikueue/bin/multikueue"]
CMD ["run"]
