package store

import "go.etcd.io/etcd/api/v3/etcdserverpb"

// condition is a condition of a write about another key than its own: the key must have the mod revision, or, if until
// is true, no later one. A missing key has the mod revision 0.
type condition struct {
	key      string
	revision int64
	until    bool
	err      error // the error of a write for which it does not hold
}

// conditions returns the conditions of the options, in the order in which their errors take precedence.
func (o *Options) conditions() (out []condition) {
	for _, name := range o.UnlessFenced {
		out = append(out, condition{key: fencePrefix + name, err: ErrFenced})
	}
	if b := o.Behind; b.Name != "" {
		out = append(out, condition{barrierPrefix + b.Name, b.Seen, true, ErrHeld})
	}
	if b := o.Passes; b.Name != "" {
		out = append(out, condition{barrierPrefix + b.Name, b.Seen, false, ErrHeld})
	}
	if turn := o.Sequence; turn.Name != "" {
		out = append(out, condition{turnPrefix + turn.Name, turn.Seen, true, ErrOvertaken})
	}
	return out
}

// compare returns the condition for a transaction.
func (c *condition) compare() *etcdserverpb.Compare {
	if c.until {
		return modified(c.key, etcdserverpb.Compare_LESS, c.revision+1)
	}
	return modified(c.key, etcdserverpb.Compare_EQUAL, c.revision)
}

// holds reports whether the condition holds for the key's mod revision.
func (c *condition) holds(revision int64) bool {
	if c.until {
		return revision <= c.revision
	}
	return revision == c.revision
}
