package batch

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// noIndex is the index of a pod that has none.
const noIndex = -1

// span is a range of indexes with both ends.
type span struct{ first, last int }

// indexes is a set of completion indexes: spans in order that neither overlap nor touch.
type indexes []span

// parseIndexes parses a set of indexes as in statuses: "1,3-5". It skips invalid parts, and indexes not below
// completions.
func parseIndexes(text string, completions int) (out indexes) {
	if text == "" {
		return nil
	}
	for _, part := range strings.Split(text, ",") {
		from, to, both := strings.Cut(part, "-")
		first, err := strconv.Atoi(from)
		if err != nil {
			continue
		}
		if first >= completions {
			break
		}
		last := first
		if both {
			if last, err = strconv.Atoi(to); err != nil {
				continue
			}
			last = min(last, completions-1)
		}
		if n := len(out); n > 0 && out[n-1].last == first-1 {
			out[n-1].last = last
		} else {
			out = append(out, span{first, last})
		}
	}
	return out
}

// String writes a set as statuses hold it.
func (x indexes) String() string {
	var parts []string
	for _, s := range x {
		switch {
		case s.last == s.first:
			parts = append(parts, strconv.Itoa(s.first))
		case s.last == s.first+1:
			parts = append(parts, strconv.Itoa(s.first), strconv.Itoa(s.last))
		default:
			parts = append(parts, strconv.Itoa(s.first)+"-"+strconv.Itoa(s.last))
		}
	}
	return strings.Join(parts, ",")
}

// count returns the number of indexes.
func (x indexes) count() (n int) {
	for _, s := range x {
		n += s.last - s.first + 1
	}
	return n
}

// has reports whether an index is in the set.
func (x indexes) has(i int) bool {
	at, _ := slices.BinarySearchFunc(x, i, func(s span, i int) int { return cmp.Compare(s.last, i) })
	return at < len(x) && x[at].first <= i
}

// union returns the union of two sets.
func (x indexes) union(other indexes) (out indexes) {
	all := slices.Concat(x, other)
	slices.SortStableFunc(all, func(a, b span) int { return cmp.Compare(a.first, b.first) })
	for _, s := range all {
		if n := len(out); n > 0 && s.first <= out[n-1].last+1 {
			out[n-1].last = max(out[n-1].last, s.last)
		} else {
			out = append(out, s)
		}
	}
	return out
}

// with returns the set with some more indexes.
func (x indexes) with(more []int) indexes {
	var spans indexes
	for _, i := range more {
		spans = append(spans, span{i, i})
	}
	return x.union(spans)
}

// free returns the lowest indexes below completions that are not in the set, at most n.
func (x indexes) free(n, completions int) (out []int) {
	for next, spans := 0, x; next < completions && len(out) < n; {
		if len(spans) > 0 && spans[0].first <= next {
			next, spans = max(next, spans[0].last+1), spans[1:]
			continue
		}
		out = append(out, next)
		next++
	}
	return out
}

// overlap returns how many indexes are in both sets.
func (x indexes) overlap(other indexes) (n int) {
	for len(x) > 0 && len(other) > 0 {
		a, b := x[0], other[0]
		n += max(0, min(a.last, b.last)-max(a.first, b.first)+1)
		if a.last <= b.last {
			x = x[1:]
		} else {
			other = other[1:]
		}
	}
	return n
}

// indexOf returns the completion index of a pod, noIndex if it has none.
func indexOf(p *corev1.Pod) int {
	i, err := strconv.Atoi(p.Annotations[batchv1.JobCompletionIndexAnnotation])
	if err != nil || i < 0 {
		return noIndex
	}
	return i
}

// indexIn returns the index of a pod if it is below completions, else noIndex.
func indexIn(p *corev1.Pod, completions int) int {
	if i := indexOf(p); i < completions {
		return i
	}
	return noIndex
}

// indexesOf returns the indexes of pods.
func indexesOf(pods []*corev1.Pod) (out []int) {
	for _, p := range pods {
		if i := indexOf(p); i != noIndex {
			out = append(out, i)
		}
	}
	return out
}

// byIndex sorts pods by their indexes.
func byIndex(pods []*corev1.Pod) {
	slices.SortStableFunc(pods, func(a, b *corev1.Pod) int { return cmp.Compare(indexOf(a), indexOf(b)) })
}

// failures returns how often the index of a pod has failed before it, and how often besides in ways that do not count.
func failures(p *corev1.Pod) (counted, ignored int32) {
	read := func(annotation string) int32 {
		n, err := strconv.ParseInt(p.Annotations[annotation], 10, 32)
		if err != nil || n < 0 {
			return 0
		}
		return int32(n)
	}
	return read(batchv1.JobIndexFailureCountAnnotation), read(batchv1.JobIndexIgnoredFailureCountAnnotation)
}

func allFailures(p *corev1.Pod) int32 {
	counted, ignored := failures(p)
	return counted + ignored
}
