package compat

import "strconv"

// bounds compares the limits of numbers and sizes.
func (f *fieldComparison) bounds() {
	was, is := f.was, f.is
	f.lower(Minimum, "minimum", number(was.Minimum, was.ExclusiveMinimum), number(is.Minimum, is.ExclusiveMinimum))
	f.upper(Maximum, "maximum", number(was.Maximum, was.ExclusiveMaximum), number(is.Maximum, is.ExclusiveMaximum))
	f.lower(MinItems, "minItems", count(was.MinItems), count(is.MinItems))
	f.upper(MaxItems, "maxItems", count(was.MaxItems), count(is.MaxItems))
	f.lower(MinLength, "minLength", count(was.MinLength), count(is.MinLength))
	f.upper(MaxLength, "maxLength", count(was.MaxLength), count(is.MaxLength))
	f.lower(MinProperties, "minProperties", count(was.MinProperties), count(is.MinProperties))
	f.upper(MaxProperties, "maxProperties", count(was.MaxProperties), count(is.MaxProperties))
	f.changed(MultipleOf, "multipleOf", number(was.MultipleOf, false).String(), number(is.MultipleOf, false).String())
	switch {
	case is.UniqueItems && !was.UniqueItems:
		f.add(UniqueItems, "uniqueItems", "the items must be unique")
	case was.UniqueItems && !is.UniqueItems:
		f.add(Loosening, "uniqueItems", "the items need not be unique")
	}
}

// bound is a limit, or none.
type bound struct {
	set       bool
	value     float64
	exclusive bool
}

func number(v *float64, exclusive bool) bound {
	if v == nil {
		return bound{}
	}
	return bound{true, *v, exclusive}
}

func count(v *int64) bound {
	if v == nil {
		return bound{}
	}
	return bound{true, float64(*v), false}
}

// String returns the limit, or "" for none.
func (b bound) String() string {
	switch {
	case !b.set:
		return ""
	case b.exclusive:
		return strconv.FormatFloat(b.value, 'g', -1, 64) + " (exclusive)"
	}
	return strconv.FormatFloat(b.value, 'g', -1, 64)
}

// lower compares lower limits.
func (f *fieldComparison) lower(class Class, keyword string, was, is bound) {
	stricter := !was.set || is.value > was.value || is.value == was.value && is.exclusive
	f.limit(class, keyword, was, is, stricter)
}

// upper compares upper limits.
func (f *fieldComparison) upper(class Class, keyword string, was, is bound) {
	stricter := !was.set || is.value < was.value || is.value == was.value && is.exclusive
	f.limit(class, keyword, was, is, stricter)
}

// limit adds the finding for a changed limit.
func (f *fieldComparison) limit(class Class, keyword string, was, is bound, stricter bool) {
	switch {
	case was == is:
	case is.set && stricter && was.set:
		f.add(class, keyword, "%s changes from %s to %s", keyword, was, is)
	case is.set && stricter:
		f.add(class, keyword, "%s %s is added", keyword, is)
	case is.set:
		f.add(Loosening, keyword, "%s changes from %s to %s", keyword, was, is)
	default:
		f.add(Loosening, keyword, "%s %s is removed", keyword, was)
	}
}
