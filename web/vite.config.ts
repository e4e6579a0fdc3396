import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

// `DANLU_ADDRESS=http://127.0.0.1:PORT npm run dev` works on a running server's data.
const server = process.env.DANLU_ADDRESS;

export default defineConfig({
  plugins: [react()],
  build: {
    target: "es2022",
    sourcemap: false,
    manifest: true,
    reportCompressedSize: false,
    chunkSizeWarningLimit: 900,
  },
  server: server ? { proxy: { "/api": { target: server, ws: true, changeOrigin: false } } } : {},
});
