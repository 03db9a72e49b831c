package extension

import (
	"github.com/bowsprit/bowsprit"
	kinds "github.com/bowsprit/bowsprit/internal/feature/extension"
	"github.com/bowsprit/bowsprit/internal/part"
)

// In makes kinds part of a server in this process, by the field Extensions of its configuration. The error says what is
// wrong with one of them.
func In(all ...Kind) (bowsprit.Extension, error) {
	p, err := makePart(all)
	return brought{part.Extension{Part: p}}, err
}

// brought is what a server takes in.
type brought struct{ extension part.Extension }

// Bring implements bowsprit.Extension.
func (b brought) Bring() part.Extension { return b.extension }

func makePart(all []Kind) (part.Part, error) {
	var out []*kinds.Kind
	for i := range all {
		k, err := all[i].internal()
		if err != nil {
			return part.Part{}, err
		}
		out = append(out, k)
	}
	return kinds.Part(out)
}
