package check

import "k8s.io/apimachinery/pkg/util/diff"

// difference shows clients what they have changed and may not.
func difference(was, now any) string { return diff.Diff(was, now) }
