// The page's icons: strokes of one weight on a 20-unit square, coloured by the text around them.
import type { ComponentChildren } from "preact";

function Icon({ children }: { readonly children: ComponentChildren }) {
  return (
    <svg
      class="icon"
      viewBox="0 0 20 20"
      fill="none"
      stroke="currentColor"
      stroke-width="1.6"
      stroke-linecap="round"
      stroke-linejoin="round"
      aria-hidden="true"
      focusable="false"
    >
      {children}
    </svg>
  );
}

export const SendIcon = () => (
  <Icon>
    <path d="M10 16V4.500M5 9.500l5-5 5 5" />
  </Icon>
);
export const QueueIcon = () => (
  <Icon>
    <circle cx="10" cy="10" r="6.5" />
    <path d="M10 6.5V10l2.5 1.5" />
  </Icon>
);
export const StopIcon = () => (
  <Icon>
    <rect x="5.5" y="5.5" width="9" height="9" rx="1.5" fill="currentColor" />
  </Icon>
);
export const PlusIcon = () => (
  <Icon>
    <path d="M10 4.500v11M4.5 10h11" />
  </Icon>
);
export const CloseIcon = () => (
  <Icon>
    <path d="m5.5 5.5 9 9M14.5 5.500l-9 9" />
  </Icon>
);
export const CheckIcon = () => (
  <Icon>
    <path d="m4.5 10.5 3.5 3.5 7.5-8" />
  </Icon>
);
export const AlertIcon = () => (
  <Icon>
    <path d="M10 6v5M10 14v.1" />
    <circle cx="10" cy="10" r="7.5" />
  </Icon>
);
export const ChevronIcon = () => (
  <Icon>
    <path d="m7.5 5 5 5-5 5" />
  </Icon>
);
export const RetryIcon = () => (
  <Icon>
    <path d="M15.5 8.500A6 6 0 1 0 16 11M15.8 4.500v4h-4" />
  </Icon>
);
export const SettingsIcon = () => (
  <Icon>
    <path d="M3.5 6.500h7M15 6.500h1.500M3.5 13.500H5M9.5 13.500h7" />
    <circle cx="12.7" cy="6.5" r="2" />
    <circle cx="7.2" cy="13.5" r="2" />
  </Icon>
);
export const ThemeIcon = () => (
  <Icon>
    <circle cx="10" cy="10" r="6.5" />
    <path d="M10 3.500v13a6.5 6.5 0 0 0 0-13Z" fill="currentColor" stroke="none" />
  </Icon>
);
export const PersonIcon = () => (
  <Icon>
    <circle cx="10" cy="7" r="3" />
    <path d="M4.5 16.5a5.5 5.5 0 0 1 11 0" />
  </Icon>
);
export const PlugIcon = () => (
  <Icon>
    <path d="M7 3v4M13 3v4M5 7h10v2.500a5 5 0 0 1-10 0V7ZM10 14.500V17" />
  </Icon>
);

/** The crab. */
export const Logo = () => (
  <svg
    class="logo"
    viewBox="0 0 32 32"
    fill="none"
    stroke="currentColor"
    stroke-width="2.2"
    stroke-linecap="round"
    stroke-linejoin="round"
    aria-hidden="true"
    focusable="false"
  >
    <path
      d="M8.5 19.500c0-4 3.2-6.5 7.5-6.500s7.5 2.5 7.5 6.500c0 3.600-3.400 5.5-7.5 5.500s-7.5-1.9-7.5-5.500Z"
      fill="currentColor"
      fill-opacity=".16"
    />
    <path d="M9.5 14.500C6 13.5 4 11 4.5 7.500c1.7.2 2.8 1 3.5 2.300.4-1.7 1.400-2.7 3-3.100.6 3-.1 5.2-1.5 6.800M22.5 14.500C26 13.5 28 11 27.5 7.500c-1.7.2-2.8 1-3.5 2.300-.4-1.7-1.400-2.7-3-3.100-.6 3 .1 5.2 1.5 6.8" />
    <path d="m8.5 21-4 1.500M9.5 23.500l-3 3M23.5 21l4 1.500M22.5 23.500l3 3" />
    <path d="M13.300 17.600v.1M18.7 17.600v.1" stroke-width="2.8" />
  </svg>
);
