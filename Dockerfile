# docker build -t posthouse . && docker run --rm -e KAFKA_BROKERS=kafka:9092 posthouse run router

FROM node:24-bookworm-slim AS packages
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
# The image has Node.js itself: the one that npm brings along for checkouts (190 MB) is taken out again. Other optional packages stay, as
# lz4 is among them.
RUN npm ci --omit=dev --ignore-scripts && rm -rf node_modules/node-linux-* node_modules/.bin/node

FROM node:24-bookworm-slim
ENV NODE_ENV=production
WORKDIR /app
COPY --from=packages /app/node_modules node_modules
COPY package.json LICENSE ./
COPY schemas schemas
COPY shared shared
COPY services services
COPY cli cli
# What the commands need to know of a local run.
COPY deploy/dev deploy/dev
# A number, so that Kubernetes can see that it is not root.
USER 1000:1000
EXPOSE 9400
ENTRYPOINT ["node", "/app/cli/posthouse.js"]
CMD ["--help"]
