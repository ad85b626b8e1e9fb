/** A command line for `sh`: one word is one already, several become the words a shell reads back as they are. */
export function shellLine(words: readonly string[]): string {
  return words.length === 1 ? (words[0] ?? "") : words.map(shellWord).join(" ");
}

function shellWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`;
}
