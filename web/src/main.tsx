import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { RouterProvider } from "react-router";
import { Refusal } from "./api/client";
import { router } from "./app/routes";
import { startLanguage } from "./i18n";
import "./theme.css";
import { ThemeProvider } from "./ui/theme";

const client = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 10_000,
      // What the server refuses, it refuses again; only silence is worth another try.
      retry: (count, error) =>
        count < 2 && !(error instanceof Refusal && error.status > 0 && error.status < 500),
      refetchOnWindowFocus: false,
    },
  },
});

await startLanguage();
const root = document.getElementById("root");
if (!root) throw new Error("index.html has a #root");
createRoot(root).render(
  <StrictMode>
    <QueryClientProvider client={client}>
      <ThemeProvider>
        <RouterProvider router={router} />
      </ThemeProvider>
    </QueryClientProvider>
  </StrictMode>,
);
