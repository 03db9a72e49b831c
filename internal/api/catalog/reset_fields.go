package catalog

// ResetFields limits the fields that an endpoint can change. A manager never owns a field outside the limit.
type ResetFields struct {
	// Except lists the paths of fields that keep their stored value, whatever the client sends.
	Except [][]string
	// Only lists the paths of all changeable fields, "*" for every item of a list; nil means no limit.
	Only [][]string
}

// ResetFieldsOf returns the fields that an endpoint of version v can change (subresource "" is the object itself), as
// paths in version of.
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
