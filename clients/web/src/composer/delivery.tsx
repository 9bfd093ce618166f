/** What becomes of a message that is sent while the agent answers (SPEC 8.1). */
import { ChevronDown } from "lucide-react";
import type { Delivery } from "midstream-client";
import { Menu } from "../app/menu.js";
import styles from "./delivery.module.css";

interface Way {
  readonly delivery: Delivery;
  readonly label: string;
  readonly hint: string;
}

const NOW: Way = {
  delivery: "auto",
  label: "Into this answer",
  hint: "The agent reads it at its next step",
};

/** The ways to send meanwhile. */
export const WAYS: readonly Way[] = [
  NOW,
  {
    delivery: "queue",
    label: "After this answer",
    hint: "It waits, and gets its own answer",
  },
  { delivery: "interrupt", label: "Stop, and send", hint: "The answer ends here" },
];

interface DeliveryMenuProps {
  readonly delivery: Delivery;
  readonly onDelivery: (delivery: Delivery) => void;
}

export function DeliveryMenu({ delivery, onDelivery }: DeliveryMenuProps) {
  const chosen = WAYS.find((way) => way.delivery === delivery) ?? NOW;
  return (
    <Menu
      label={`How to send it: ${chosen.label.toLowerCase()}`}
      className={styles.delivery}
      items={WAYS.map((way) => ({
        label: way.label,
        hint: way.hint,
        isChosen: way === chosen,
        onSelect: () => onDelivery(way.delivery),
      }))}
    >
      {chosen.label}
      <ChevronDown aria-hidden />
    </Menu>
  );
}
