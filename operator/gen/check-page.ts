/** Makes docs/check.md out of the table of codes. */
import { CODES } from '../check/codes.ts';

interface Entry {
  title: string;
  levels: readonly string[];
  needs?: string;
  meaning: string;
  wayOut: string;
}

const entries = Object.entries(CODES) as [code: string, entry: Entry][];

function row([code, { title, levels, needs }]: [string, Entry]): string {
  return `| [${code}](#${code.toLowerCase()}-${slug(title)}) | ${title} | ${levels.join(', ')} | ${needs ?? ''} |`;
}

/** Anchor of a heading, as GitHub makes it. */
function slug(title: string): string {
  return title
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-');
}

function section([code, { title, meaning, wayOut }]: [string, Entry]): string {
  return `### ${code} ${title}\n\n${meaning}\n\n**Way out.** ${wayOut}\n`;
}

/** The whole page as Markdown. */
export function checkPage(): string {
  return `<!-- Made by "make generate" from operator/check/codes.ts; do not edit. -->
# What check and convert look for

    npx corelane check -f renderservice.yaml --node-cpu 4     # a file, for nodes of 4 vCPUs
    npx corelane check -f renderservice.yaml --server         # what the cluster would refuse, for pipelines (C024)
    npx corelane check -n shop                                # all RenderServices of a namespace, in the cluster
    npx corelane check -f deployment.yaml -f service.yaml     # what a Deployment would bring along
    npx corelane convert -f deployment.yaml > renderservice.yaml

\`check\` reads only, and with \`--server\` makes dry runs. In a cluster it reads as far as your rights go, and says what it could not look at. [convert.md](convert.md) tells how to
move a Deployment.

| level | means |
|---|---|
| info | nothing to do |
| warning | works, less well than it could |
| decide | only a person knows the answer |
| error | does not work |

Exit code: 2 from \`decide\` on. \`check --failure-threshold warning\` and \`convert --strict\` are stricter. \`-o json\` is for programs: \`check\` prints it
on standard output, \`convert\`, whose output is the RenderService, on standard error.

| code | what is looked at | levels | needs beside the file |
|---|---|---|---|
${entries.map(row).join('\n')}

## Codes

${entries.map(section).join('\n')}`;
}
