# Winnow over stdio; `serve --http --host 0.0.0.0` is the server of a team (who may call must then be said: set
# WINNOW_HTTP_TOKENS, or issuer and resource in WINNOW_HTTP).
#   docker build -t winnow .
#   docker run --rm -i -v ~/Documents:/documents:ro winnow
#   docker run -p 127.0.0.1:8765:8765 -e WINNOW_HTTP_TOKENS=secret winnow serve --http --host 0.0.0.0
# It runs as a user without a name and writes to /cache and /tmp alone: --read-only --tmpfs /tmp is enough.
FROM python:3.12-slim
LABEL io.modelcontextprotocol.server.name="io.github.winnow-mcp/winnow" \
    org.opencontainers.image.title="Winnow" \
    org.opencontainers.image.description="The web and your own documents as small, cited evidence" \
    org.opencontainers.image.source="https://github.com/winnow-mcp/winnow" \
    org.opencontainers.image.licenses="Apache-2.0"
RUN useradd --uid 10001 --create-home winnow && mkdir -p /cache /documents && chown winnow /cache
WORKDIR /src
COPY . .
RUN pip install --no-cache-dir ".[redis,metrics,otel]" && rm -rf /src
# What is in the image, as CycloneDX; the program that lists it does not stay.
RUN python -m venv /tmp/sbom && /tmp/sbom/bin/pip install --no-cache-dir "cyclonedx-bom>=7,<8" \
    && /tmp/sbom/bin/cyclonedx-py environment --output-reproducible --of JSON -o /usr/share/winnow.cdx.json \
    "$(command -v python)" && rm -rf /tmp/sbom
WORKDIR /home/winnow
USER 10001
ENV PYTHONUNBUFFERED=1 WINNOW_CACHE=/cache WINNOW_FOLDERS=/documents
VOLUME ["/cache"]
EXPOSE 8765
ENTRYPOINT ["winnow"]
CMD ["serve"]
