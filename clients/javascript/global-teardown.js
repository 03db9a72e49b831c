// The global teardown of Jest.

export default async function teardown() {
  await globalThis[Symbol.for('bowsprit.shared')]?.stop();
}
