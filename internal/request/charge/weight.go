package charge

// Costs in bytes, per element of a document, of a write from the body to the store.
const (
	// perByte is for the copies of the text: the body, its strings, the encoded object, the transaction.
	perByte = 8
	// perObject is for a map in the object and its copies, a struct of the kind's Go type, and a path in managedFields.
	perObject = 2000
	// perList is for a list, which holds less.
	perList = 400
	// perMember is for a member of a map: its entries there, in a map of the Go type, and in managedFields.
	perMember = 500
	// perValue is for a value in a map or a list.
	perValue = 150
	// perItem is for a string in a list, besides perValue: a list may be a set, which has each item as a field in
	// managedFields.
	perItem = 300
	// perNull is for a null in a list, which becomes an empty struct of the kind's Go type.
	perNull = perObject
)

// counts are the elements of a document.
type counts struct {
	objects, lists, members, values, nulls int
	// strings includes the names of members. It is counted in large documents only.
	strings int
}

func (c counts) weight(size int) int64 {
	items := max(0, c.strings-2*c.members) // at least so many strings are no member's name or value
	return perByte*int64(size) + perObject*int64(c.objects) + perList*int64(c.lists) + perMember*int64(c.members) +
		perValue*int64(c.values) + perNull*int64(c.nulls) + perItem*int64(items)
}
