package main

import (
	"fmt"
	"maps"
	"slices"
)

// items are the items of a subject in one release: a value, or a hash of one, by name.
type items map[string]string

// subject is one kind of changes.
type subject struct {
	title string
	read  func(t tree) (items, error)
	// words returns the words by which our files are found, the most exact one first.
	words func(name string) []string
	// folder returns our folder or file for an item that no word finds, "" if there is none.
	folder func(name string) string
	// below is the folder of the files that words may find, "" for all.
	below string
	// hidden is true if values are hashes, which the report omits.
	hidden bool
}

// change is the difference of one item.
type change struct {
	how        string // "new", "gone" or "changed"
	name       string
	was, is    string
	ours       []string
	everywhere int // the number of our files that were left out
}

// result holds the changes of a subject.
type result struct {
	subject
	changes []change
	total   int // items in the later release
}

// report holds the results of all subjects.
type report []result

func compare(before, after tree, root string) (report, error) {
	ours, err := readOurs(root)
	if err != nil {
		return nil, err
	}
	var all report
	for _, s := range subjects(ours) {
		old, err := s.read(before)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.title, err)
		}
		now, err := s.read(after)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.title, err)
		}
		r := result{subject: s, total: len(now)}
		for _, c := range difference(old, now) {
			c.ours, c.everywhere = ours.find(s.words(c.name), s.below)
			if folder := s.folder(c.name); len(c.ours) == 0 && folder != "" {
				c.ours = []string{folder}
			}
			r.changes = append(r.changes, c)
		}
		all = append(all, r)
	}
	return all, nil
}

// difference returns the changes between two releases, in the order of the names.
func difference(old, now items) (all []change) {
	names := maps.Clone(old)
	maps.Copy(names, now)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		was, had := old[name]
		is, has := now[name]
		switch {
		case !had:
			all = append(all, change{how: "new", name: name, is: is})
		case !has:
			all = append(all, change{how: "gone", name: name, was: was})
		case was != is:
			all = append(all, change{how: "changed", name: name, was: was, is: is})
		}
	}
	return all
}
