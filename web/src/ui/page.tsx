/** The frame of a page: its title in the window and on it, what can be done, what it holds, the command for it. */
import { type ReactNode, useEffect } from "react";
import { NavLink } from "react-router";
import { Command } from "./command";

type PageProps = {
  title: string;
  heading?: ReactNode;
  actions?: ReactNode;
  command?: string;
  /** The page fills the window, and a part of it scrolls. */
  fixed?: boolean;
  children: ReactNode;
};

export function Page({ title, heading, actions, command, fixed, children }: PageProps) {
  useEffect(() => {
    document.title = `${title} · Danlu`;
  }, [title]);
  return (
    <main id="content" className={fixed ? "main fixed" : "main"} tabIndex={-1}>
      <div className="page-head">
        {heading ?? <h1>{title}</h1>}
        {actions ? <div className="row">{actions}</div> : null}
      </div>
      {children}
      {command ? <Command text={command} /> : null}
    </main>
  );
}

export type TabLink = { to: string; title: ReactNode; isCurrent?: boolean };

/** Tabs are addresses: they can be opened beside each other, and sent to somebody. */
export function Tabs({ label, links }: { label: string; links: TabLink[] }) {
  return (
    <nav className="tabs" aria-label={label}>
      {links.map((link) =>
        link.isCurrent === undefined ? (
          <NavLink key={link.to} to={link.to} end>
            {link.title}
          </NavLink>
        ) : (
          <NavLink
            key={link.to}
            to={link.to}
            className={() => ""}
            aria-current={link.isCurrent ? "page" : false}
          >
            {link.title}
          </NavLink>
        ),
      )}
    </nav>
  );
}
