/** HAProxy's agent check, asked of a program that runs without containers. */
import net from 'node:net';
import { until } from '../../e2e/harness/engine/pod.ts';
import type { Program } from './program.ts';

export interface Question {
  socket: net.Socket;
  answer: Promise<{ text: string; elapsedMs: number }>;
  isAnswered: boolean;
}

/** Asks a supervisor as HAProxy does. */
export function ask({ runtimePort }: Program, words = 'corelane-agent 1'): Question {
  const askedAt = performance.now();
  const socket = net.connect(runtimePort, '127.0.0.1', () => socket.write(`${words}\n`));
  const question: Question = {
    socket,
    isAnswered: false,
    answer: new Promise((resolve, reject) => {
      let text = '';
      socket.on('data', (chunk) => (text += chunk));
      socket.on('error', reject);
      socket.on('close', () => {
        question.isAnswered = true;
        resolve({ text: text.trim(), elapsedMs: performance.now() - askedAt });
      });
    }),
  };
  return question;
}

/** A question that waits. The one before it has told what there is. */
export async function askUntilOneWaits(program: Program, words?: string): Promise<Question> {
  return until('a question waits', async () => {
    await ask(program, words).answer;
    const question = ask(program, words);
    await new Promise((resolve) => setTimeout(resolve, 200));
    return question.isAnswered ? undefined : question;
  });
}
