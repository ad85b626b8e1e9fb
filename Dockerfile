# A Longhaul worker: both roles, non-root, under a small init that restarts it in place.
FROM node:22.21.1-bookworm-slim AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci
COPY tsconfig.json tsconfig.build.json ./
COPY scripts ./scripts
COPY src ./src
RUN node scripts/build.mjs && npm prune --omit=dev

FROM node:22.21.1-bookworm-slim
RUN apt-get update \
  && apt-get install -y --no-install-recommends ca-certificates git procps ripgrep tini \
  && rm -rf /var/lib/apt/lists/* \
  && install -d -o node -g node /var/lib/longhaul /workspaces
WORKDIR /app
COPY --from=build /app/package.json ./
COPY --from=build /app/node_modules ./node_modules
COPY --from=build /app/dist ./dist
COPY examples ./examples
COPY --chmod=755 deploy/worker-entry.sh /usr/local/bin/longhaul-worker
RUN ln -s /app/dist/cli/main.js /usr/local/bin/longhaul && chmod 755 /app/dist/cli/main.js
ENV NODE_ENV=production TZ=UTC LONGHAUL_HOME=/var/lib/longhaul
USER node
VOLUME ["/var/lib/longhaul", "/workspaces"]
ENTRYPOINT ["tini", "--", "longhaul-worker"]
