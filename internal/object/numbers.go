package object

// WholeNumbers converts numbers without a fraction to int64, in place, as everywhere in the server's decoded JSON.
func WholeNumbers(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key, child := range v {
			v[key] = WholeNumbers(child)
		}
	case []any:
		for i, child := range v {
			v[i] = WholeNumbers(child)
		}
	case float64:
		if n := int64(v); float64(n) == v {
			return n
		}
	}
	return v
}
