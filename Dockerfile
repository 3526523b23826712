# Winnow over Streamable HTTP on port 8765. Who may call must be said: set WINNOW_HTTP_TOKENS or WINNOW_HTTP_ISSUER.
#   docker build -t winnow .
#   docker run -p 127.0.0.1:8765:8765 -e WINNOW_HTTP_TOKENS=secret -v ~/Documents:/documents:ro winnow
FROM python:3.12-slim
RUN useradd --create-home winnow && mkdir -p /cache /documents && chown winnow /cache
WORKDIR /src
COPY . .
RUN pip install --no-cache-dir . && rm -rf /src
WORKDIR /home/winnow
USER winnow
ENV PYTHONUNBUFFERED=1 WINNOW_CACHE=/cache WINNOW_FOLDERS=/documents
VOLUME ["/cache"]
EXPOSE 8765
HEALTHCHECK CMD ["python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:8765/healthz', timeout=3)"]
ENTRYPOINT ["winnow"]
CMD ["serve", "--http", "--host", "0.0.0.0"]
