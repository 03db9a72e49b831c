package apply

// KeepTimes copies the times of live's managedFields to obj if only these times differ, so that a repeated write
// changes nothing. Call it after all other changes of an update. live is read only. It returns true if managedFields
// have other times and are the same otherwise, but the objects differ: they may be the same in their stored form.
func KeepTimes(live, obj map[string]any) (renewed bool) {
	before, _ := storedEntries(live)
	after, _ := storedEntries(obj)
	if len(before) == 0 || len(before) != len(after) {
		return false
	}
	moved := false
	for i := range before {
		was, ok1 := before[i].(map[string]any)
		is, ok2 := after[i].(map[string]any)
		if !ok1 || !ok2 {
			return false
		}
		moved = moved || was["time"] != is["time"]
		if !equalBut(was, is, "time", nil) {
			return false
		}
	}
	if !moved {
		return false
	}
	if !equalBut(live, obj, "metadata", func(a, b any) bool {
		was, _ := a.(map[string]any)
		is, _ := b.(map[string]any)
		return equalBut(was, is, "managedFields", func(any, any) bool { return true })
	}) {
		return true
	}
	setManagedFields(obj, before)
	return false
}

// equalBut compares two maps, with the given field compared by same; a nil same ignores the field.
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
