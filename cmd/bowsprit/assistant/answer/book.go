package answer

import (
	"cmp"
	"container/list"
	"context"
	"fmt"
	"strings"
	"sync"
)

const (
	// maxPages and maxBytes bound the pages of a Book, unless it has other bounds.
	maxPages = 64
	maxBytes = 16 << 20
)

// Book keeps the pages that follow answers, the last ones. It is safe for concurrent use.
type Book struct {
	// MaxBytes bounds the bytes of the pages, 0 for 16 MiB. It is set before the first use.
	MaxBytes int

	mu struct {
		sync.Mutex
		pages map[string]*list.Element // of *page
		order list.List                // the oldest first
		bytes int
		last  int
	}
}

// page is the rest of an answer.
type page struct {
	name  string
	bytes int
	rest  Answer
}

// Page returns the rest of an answer, for Write. The page remains.
func (b *Book) Page(name string) (*Answer, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	found := b.mu.pages[name]
	if found == nil {
		return nil, fmt.Errorf("there is no page %q any more: repeat the first call", name)
	}
	b.mu.order.MoveToBack(found)
	rest := found.Value.(*page).rest
	return &rest, nil
}

// Write returns the text of an answer within a budget of bytes, 0 for the default. The rest becomes a page. Write does
// not change the answer.
func (b *Book) Write(ctx context.Context, from *Answer, budget int) (string, error) {
	a := *from
	if budget == 0 {
		budget = DefaultBudget
	}
	left := max(MinBudget, min(budget, MaxBudget)) - min(a.bytes, maxFields) - len(title) - reserved
	var lines []string
	if a.Head != "" {
		head, _ := cut(a.Head)
		lines = append(lines, starts+head)
		left -= len(lines[0]) + 1
	}
	count, err := a.fill(ctx, &lines, left)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	for _, field := range a.fields {
		fmt.Fprintln(&out, field)
	}
	whole := a.tail == "" && len(a.Lines) == 0 // fill ends earlier only if a line does not fit
	if !whole || a.before > 0 {
		fmt.Fprintf(&out, "lines: %d-%d", a.before+1, a.before+count)
		if a.More == nil {
			fmt.Fprintf(&out, " of %d", a.before+count+len(a.Lines))
		}
		fmt.Fprintln(&out)
	}
	a.before += count
	if !whole {
		fmt.Fprintf(&out, "next: call next_page with page=%s\n", b.put(&page{rest: a}))
	}
	if len(lines) > 0 {
		fmt.Fprintln(&out, title)
	}
	for _, line := range lines {
		fmt.Fprintln(&out, line)
	}
	return out.String(), nil
}

// fill moves lines of the answer to a page until none is left, or the next does not fit into left bytes. It returns the
// number of lines that began.
func (a *Answer) fill(ctx context.Context, page *[]string, left int) (count int, err error) {
	for {
		start, line := continues, a.tail
		switch {
		case a.tail != "":
		case len(a.Lines) > 0:
			start, line = starts, a.Lines[0]
		case a.More == nil:
			return count, nil
		default:
			if a.Lines, a.More, err = a.More(ctx); err != nil {
				return count, err
			}
			continue
		}
		piece, rest := cut(line)
		if left -= len(start) + len(piece) + 1; left < 0 {
			return count, nil
		}
		*page = append(*page, start+piece)
		if start == starts {
			a.Lines = a.Lines[1:]
			count++
		}
		a.tail = rest
	}
}

// put keeps a page, and drops the oldest ones beyond the bounds. It returns the page's name.
func (b *Book) put(p *page) string {
	p.bytes = len(p.rest.tail)
	for _, line := range p.rest.Lines {
		p.bytes += len(line)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.mu.pages == nil {
		b.mu.pages = map[string]*list.Element{}
	}
	b.mu.last++
	p.name = fmt.Sprintf("p%d", b.mu.last)
	b.mu.pages[p.name] = b.mu.order.PushBack(p)
	b.mu.bytes += p.bytes
	for b.mu.order.Len() > maxPages || b.mu.bytes > cmp.Or(b.MaxBytes, maxBytes) && b.mu.order.Len() > 1 {
		oldest := b.mu.order.Remove(b.mu.order.Front()).(*page)
		delete(b.mu.pages, oldest.name)
		b.mu.bytes -= oldest.bytes
	}
	return p.name
}
