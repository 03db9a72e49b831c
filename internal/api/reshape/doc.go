// Package reshape converts objects between the versions of a kind by declared rules.
//
// It stands below package convert. A definition has a Config: steps between pairs of versions, each a list of rules.
// New compiles it, with the schemas of the versions, into a Plan, which converts decoded JSON in place between any two
// versions. A rule works in both directions. A value that has no place in the new version, or that the way back would
// not restore, goes into an annotation, the stash; the way back takes it out again. So each way there and back restores
// the object, and rules cannot lose data, except for data that the configuration gives up by name.
//
// The invariant holds by construction: after each rule that is not exact, the conversion runs its inverse and compares
// (level.go). docs/design/declarative-conversion.md describes the rules and the stash for users.
//
// A Plan is immutable and safe for concurrent use. Objects belong to the caller.
package reshape
