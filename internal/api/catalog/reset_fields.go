package catalog

// ResetFields is what of an object an endpoint lets its callers change. No manager comes to own a field that is out of
// reach.
type ResetFields struct {
	// Except are the paths of fields that are put back as they were, whatever is sent.
	Except [][]string
	// Only are the paths to all that can be changed, "*" for every item of a list; nil means no such limit.
	Only [][]string
}

// ResetFieldsOf returns what the endpoint of a version (subresource "" is the object's own) lets its callers change,
// in the version of that is seen.
func (v *Version) ResetFieldsOf(subresource string, of *Version) ResetFields {
	if v.ResetFields != nil {
		return v.ResetFields[subresource]
	}
	switch {
	case !of.Status:
	case subresource == "" && v == of:
		return ResetFields{Except: [][]string{{"status"}}}
	case subresource == "status":
		return ResetFields{Except: [][]string{{"metadata"}, {"spec"}}}
	}
	return ResetFields{}
}
