/** Moments and countdowns. */
import { useEffect, useReducer } from "react";
import { duration } from "./amounts.js";
import { useSurroundings } from "./surroundings.js";

/** The time of day, with the day where it is another one. */
export function Moment({ at }: { readonly at: number }) {
  const date = new Date(at);
  const sameDay = date.toDateString() === new Date().toDateString();
  const time = date.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  const day = sameDay ? "" : `${date.toLocaleDateString([], { day: "numeric", month: "short" })}, `;
  return (
    <time dateTime={date.toISOString()} title={date.toLocaleString()}>
      {day}
      {time}
    </time>
  );
}

/** How long is left until `until`, in ms by the server's clock. */
export function Countdown({ until }: { readonly until: number }) {
  const { now = Date.now } = useSurroundings();
  const [, tick] = useReducer((count: number) => count + 1, 0);
  const left = until - now();
  const open = left > 0;
  useEffect(() => {
    if (open) {
      const timer = setInterval(tick, 1000);
      return () => clearInterval(timer);
    }
    return undefined;
  }, [open]);
  return <span>{open ? `Expires in ${duration(Math.ceil(left / 1000) * 1000)}` : "Expiring"}</span>;
}
