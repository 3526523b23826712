# Winnow over Streamable HTTP on port 8765. Who may call must be said: set WINNOW_HTTP_TOKENS, or issuer and resource in WINNOW_HTTP.
#   docker build -t winnow .
#   docker run -p 127.0.0.1:8765:8765 -e WINNOW_HTTP_TOKENS=secret -v ~/Documents:/documents:ro winnow
# It runs as a user without a name and writes to /cache and /tmp alone: --read-only --tmpfs /tmp is enough.
FROM python:3.12-slim
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
HEALTHCHECK CMD ["python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:8765/healthz', timeout=3)"]
ENTRYPOINT ["winnow"]
CMD ["serve", "--http", "--host", "0.0.0.0"]
