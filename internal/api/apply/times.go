package apply

// KeepTimes gives the entries of obj's managedFields the times that they have in live if these times are all that tells
// the two objects apart, so that writing the same again is no write. It belongs behind everything that changes obj in
// an update. live is read only.
func KeepTimes(live, obj map[string]any) {
	before, _ := storedEntries(live)
	after, _ := storedEntries(obj)
	if len(before) == 0 || len(before) != len(after) {
		return
	}
	moved := false
	for i := range before {
		was, ok1 := before[i].(map[string]any)
		is, ok2 := after[i].(map[string]any)
		if !ok1 || !ok2 {
			return
		}
		moved = moved || was["time"] != is["time"]
		if !equalBut(was, is, "time", nil) {
			return
		}
	}
	if !moved || !equalBut(live, obj, "metadata", func(a, b any) bool {
		was, _ := a.(map[string]any)
		is, _ := b.(map[string]any)
		return equalBut(was, is, "managedFields", func(any, any) bool { return true })
	}) {
		return
	}
	setManagedFields(obj, before)
}

// equalBut compares two maps, one field of them by same; nil same passes over a field that either may lack.
func equalBut(a, b map[string]any, field string, same func(a, b any) bool) bool {
	if same != nil && len(a) != len(b) {
		return false
	}
	for name, value := range a {
		if name == field {
			if same != nil && !same(value, b[name]) {
				return false
			}
			continue
		}
		other, ok := b[name]
		if !ok || !equal(value, other) {
			return false
		}
	}
	for name := range b {
		if _, ok := a[name]; !ok && name != field {
			return false
		}
	}
	return true
}
