/** Which page is at which address. Each is loaded when somebody goes there. */
import { createBrowserRouter, type RouteObject } from "react-router";
import { Lost } from "./lost";
import { Shell } from "./shell";

type Lazy = () => Promise<{ Component: React.ComponentType }>;

const page = (path: string, load: Lazy): RouteObject => ({
  path,
  lazy: load,
  hydrateFallbackElement: <Empty />,
});

/** Until the code of the first page is there: nothing, for a moment. */
function Empty() {
  return null;
}

export const router = createBrowserRouter([
  page("/sign-in", async () => ({ Component: (await import("../pages/sign-in/sign-in")).SignIn })),
  page("/set-password", async () => ({
    Component: (await import("../pages/sign-in/set-password")).SetPassword,
  })),
  page("/register", async () => ({ Component: (await import("../pages/sign-in/register")).Register })),
  {
    path: "/",
    element: <Shell />,
    hydrateFallbackElement: <Empty />,
    errorElement: <Lost />,
    children: [
      {
        index: true,
        lazy: async () => ({ Component: (await import("../pages/overview/overview")).Overview }),
      },
      page("jobs", async () => ({ Component: (await import("../pages/jobs/jobs")).Jobs })),
      page("jobs/:id/:tab?", async () => ({ Component: (await import("../pages/job/job")).Job })),
      page("submit", async () => ({ Component: (await import("../pages/submit/submit")).Submit })),
      page("nodes", async () => ({ Component: (await import("../pages/nodes/nodes")).Nodes })),
      page("nodes/:name", async () => ({ Component: (await import("../pages/nodes/node")).Node })),
      page("quotas", async () => ({ Component: (await import("../pages/quotas/quotas")).Quotas })),
      page("members", async () => ({ Component: (await import("../pages/members/members")).Members })),
      page("migrate", async () => ({ Component: (await import("../pages/migrate/migrate")).Migrate })),
      page("simulate", async () => ({ Component: (await import("../pages/simulate/simulate")).Simulate })),
      page("profile", async () => ({ Component: (await import("../pages/profile/profile")).Profile })),
      page("admin/:tab", async () => ({ Component: (await import("../pages/admin/admin")).Admin })),
      { path: "*", element: <Lost /> },
    ],
  },
]);
