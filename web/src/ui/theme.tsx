/** Light and dark, for our own styles and for antd's. */
import { theme as antd, ConfigProvider } from "antd";
import { createContext, type ReactNode, useContext, useEffect, useMemo, useState } from "react";
import { keep, kept } from "../app/kept";

export type Theme = "light" | "dark" | "system";
const THEMES: Theme[] = ["system", "light", "dark"];

type Chosen = { theme: Theme; isDark: boolean; choose: (theme: Theme) => void };
const Context = createContext<Chosen>({ theme: "system", isDark: false, choose: () => {} });

const SYSTEM = window.matchMedia("(prefers-color-scheme: dark)");

export function ThemeProvider({ children }: { children: ReactNode }) {
  const [theme, setTheme] = useState<Theme>(() => kept("theme", THEMES, "system"));
  const [systemDark, setSystemDark] = useState(SYSTEM.matches);
  useEffect(() => {
    const listen = () => setSystemDark(SYSTEM.matches);
    SYSTEM.addEventListener("change", listen);
    return () => SYSTEM.removeEventListener("change", listen);
  }, []);
  const isDark = theme === "dark" || (theme === "system" && systemDark);
  useEffect(() => {
    document.documentElement.dataset.theme = isDark ? "dark" : "light";
  }, [isDark]);
  const chosen = useMemo(
    () => ({
      theme,
      isDark,
      choose: (next: Theme) => {
        keep("theme", next);
        setTheme(next);
      },
    }),
    [theme, isDark],
  );
  const tokens = {
    colorPrimary: isDark ? "#3d8fe8" : "#0b62c4",
    colorError: isDark ? "#ff7b72" : "#c2221f",
    colorBgContainer: isDark ? "#171b21" : "#ffffff",
    colorBgElevated: isDark ? "#1f252d" : "#ffffff",
    colorBgBase: isDark ? "#171b21" : "#ffffff",
    colorTextBase: isDark ? "#e6e9ed" : "#1b1f24",
    colorTextPlaceholder: isDark ? "#9aa5b1" : "#626b75",
    colorTextDisabled: isDark ? "#8b95a1" : "#6b7480",
    colorBorder: isDark ? "#39424d" : "#c9d0d8",
    fontFamily: "inherit",
    borderRadius: 6,
    fontSize: 13,
    controlHeight: 32,
    wireframe: false,
    motion: false,
  };
  return (
    <Context.Provider value={chosen}>
      <ConfigProvider
        theme={{
          // White on the palette's own blue is too faint in the dark.
          components: isDark ? { Button: { colorPrimary: "#2565b0", colorPrimaryHover: "#2f74c4" } } : {},
          algorithm: isDark ? antd.darkAlgorithm : antd.defaultAlgorithm,
          token: tokens,
          hashed: false,
        }}
        button={{ autoInsertSpace: false }}
      >
        {children}
      </ConfigProvider>
    </Context.Provider>
  );
}

export const useTheme = () => useContext(Context);
