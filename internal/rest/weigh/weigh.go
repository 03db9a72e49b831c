// Package weigh says what a list or a watch will cost, for flow control, before it is done.
//
// It looks at the view as the verbs do, in the time of a lookup, and decides nothing. Its functions are safe for
// concurrent use.
package weigh

import (
	"net/url"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/bowsprit/bowsprit/internal/request"
	"github.com/bowsprit/bowsprit/internal/verb"
)

// Bytes returns how many bytes of objects a list, or the beginning of a watch, touches: those of its namespace, or of
// the one object that it names, or that an index leads to, and no more than its limit has. known is false if it names
// nothing that is stored here. It decides nothing: what costs too much to find out is estimated from above.
func Bytes(r *verb.Reader, info *request.Info, query string) (bytes int64, known bool) {
	res, ver := r.Catalog().Snapshot().Served(info.Group, info.Version, info.Resource)
	if res == nil || res.Virtual || info.Subresource != "" {
		return 0, false
	}
	collection, namespace := r.View().Collection(res.Prefix), info.Namespace
	if !res.Namespaced {
		namespace = ""
	}
	objects, total := 0, 0
	if name, value := indexOf(r, &verb.Call{Resource: res, Version: ver, Namespace: namespace}, info); name != nil {
		objects, total, known = collection.WeighBy(name, value, namespace)
	}
	if !known {
		objects, total = collection.Snapshot().Weigh(namespace)
	}
	if objects == 0 {
		return 0, true
	}
	limit := objects
	if strings.Contains(query, "limit=") {
		values, _ := url.ParseQuery(query)
		if n, err := strconv.Atoi(values.Get("limit")); err == nil && n > 0 {
			limit = min(limit, n)
		}
	}
	if info.Name != "" {
		limit = 1
	}
	return int64(total) * int64(limit) / int64(objects), true
}

// Narrow reports whether a watch waits for the objects with one value of a field or label, so that writes of others do
// not wake it.
func Narrow(r *verb.Reader, info *request.Info) bool {
	res, ver := r.Catalog().Snapshot().Served(info.Group, info.Version, info.Resource)
	if res == nil {
		return false
	}
	name, _ := indexOf(r, &verb.Call{Resource: res, Version: ver, Namespace: info.Namespace}, info)
	return name != nil
}

// indexOf returns the name of the index by which the objects of a request can be found, and the value to look for; nil
// if there is none. What it cannot parse the verb will refuse.
func indexOf(r *verb.Reader, c *verb.Call, info *request.Info) (name any, value string) {
	if info.FieldSelector == "" && info.LabelSelector == "" || len(info.FieldSelector)+len(info.LabelSelector) > 1<<10 {
		return nil, ""
	}
	byField, err := fields.ParseSelector(info.FieldSelector)
	if err != nil {
		return nil, ""
	}
	byLabel, err := labels.Parse(info.LabelSelector)
	if err != nil {
		return nil, ""
	}
	return r.IndexOf(c, byLabel, byField)
}
