# The page: docker build -t parallel-groups . && docker run -p 7860:7860 parallel-groups
FROM python:3.12-slim
WORKDIR /playground
COPY packages.txt requirements.txt ./
RUN apt-get update && xargs apt-get install -y --no-install-recommends < packages.txt \
    && rm -rf /var/lib/apt/lists/* && pip install --no-cache-dir -r requirements.txt
COPY . .
ENV PYTHONUNBUFFERED=1 MPLCONFIGDIR=/tmp GRADIO_SERVER_NAME=0.0.0.0 GRADIO_SERVER_PORT=7860
EXPOSE 7860
USER nobody
CMD ["python", "app.py"]
