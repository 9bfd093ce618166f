import { Fragment, type ReactNode } from "react";

/** Draw items whose identity is their place: new ones come at the end, so the others keep their elements. */
export const inOrder = <T,>(items: readonly T[], draw: (item: T, index: number) => ReactNode): ReactNode[] =>
  // biome-ignore lint/suspicious/noArrayIndexKey: see above
  items.map((item, index) => <Fragment key={index}>{draw(item, index)}</Fragment>);
