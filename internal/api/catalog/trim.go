package catalog

// idleRounds is the number of rounds of Trim before an unused version's compiled values are dropped.
const idleRounds = 10

// Trim drops the compiled values of unused versions: unused for ten calls or, if memory is tight, since the last call.
// Values in use stay, even if memory is tight, because they would be compiled again at once. Trim returns the number of
// versions it has dropped values of. One goroutine calls it at regular intervals.
func (c *Catalog) Trim(tight bool) (dropped int) {
	c.Snapshot().Resources(func(r *Resource) {
		if !r.Custom() {
			return // few, and always in use
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

// holds reports whether there are values to drop.
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

// use marks the compiled values as used. It writes at most once a round, because many cores read this word.
func (v *Version) use() {
	if !v.used.Load() {
		v.used.Store(true)
	}
}
