package catalog

// idleRounds is how many rounds of Trim what was compiled from a version stays unused before it is dropped.
const idleRounds = 10

// Trim drops what has been compiled from unused versions: those that no request has needed for ten calls,
// or, if memory is tight, since the last one. What is in use stays, however tight it is: it would be compiled again at
// once. Trim returns how many versions it has relieved. It is for one goroutine, at regular times.
func (c *Catalog) Trim(tight bool) (dropped int) {
	c.Snapshot().Resources(func(r *Resource) {
		if !r.Custom() {
			return // few, and needed all the time
		}
		for _, v := range r.Versions {
			if v.trim(tight) {
				dropped++
			}
		}
	})
	return dropped
}

func (v *Version) trim(tight bool) bool {
	if v.used.Swap(false) {
		v.idle = 0
		return false
	}
	if !v.holds() {
		return false
	}
	if v.idle++; v.idle < idleRounds && !tight {
		return false
	}
	v.idle = 0
	v.Drop()
	return true
}

// holds reports whether there is anything to drop.
func (v *Version) holds() bool {
	if v.program.val.Load() != nil {
		return true
	}
	found := false
	v.derived.Range(func(_, _ any) bool {
		found = true
		return false
	})
	return found
}

// use notes that a request needs what is compiled. It writes only once a round: many cores read this word.
func (v *Version) use() {
	if !v.used.Load() {
		v.used.Store(true)
	}
}
