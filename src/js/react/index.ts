"use client";
/**
 * Hooks for React 18 and later, which is a peer dependency: a conversation as the state of a component.
 *
 * @packageDocumentation
 */
export { useAgent, type UseAgentOptions } from "./use-agent.js";
export { type ClientTools, useSession, type UseSessionOptions, type UsedSession } from "./use-session.js";
