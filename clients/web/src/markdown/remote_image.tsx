import { ImageIcon } from "lucide-react";
import { useState } from "react";
import { isDataImage, remoteAddress } from "./addresses.js";
import styles from "./markdown.module.css";

/**
 * A picture in an answer. One from elsewhere is loaded only when a person asks for it: its address was written
 * by a model, and asking for it tells whoever owns the address what the model put there.
 */
export function RemoteImage({
  address,
  alt,
  title,
}: {
  readonly address: string;
  readonly alt: string;
  readonly title: string | undefined;
}) {
  const [wanted, setWanted] = useState("");
  const [failed, setFailed] = useState("");
  const remote = remoteAddress(address);
  if (isDataImage(address) || (remote && wanted === address && failed !== address)) {
    return (
      <img
        className={styles.image}
        src={remote?.href ?? address}
        alt={alt}
        title={title}
        loading="lazy"
        referrerPolicy="no-referrer"
        onError={() => setFailed(address)}
      />
    );
  }
  if (!remote) {
    return <span>{alt}</span>;
  }
  const load = () => {
    setWanted(address);
    setFailed("");
  };
  return (
    <button type="button" className={styles.remote} onClick={load}>
      <ImageIcon aria-hidden />
      <span className={styles.remoteText}>
        <span>{alt || "Picture"}</span>
        <span className={styles.remoteHost}>
          {failed === address
            ? `Could not be loaded from ${remote.host}. Try again`
            : `Load it from ${remote.host}`}
        </span>
      </span>
    </button>
  );
}
