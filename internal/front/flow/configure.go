package flow

import (
	"maps"
	"slices"
	"strings"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apiserver/pkg/apis/flowcontrol/bootstrap"
)

// Configure replaces the controller's objects. It keeps them, so they must not change. Waiting and running requests
// continue; a removed level exists until its last request has left.
//
// Missing mandatory objects get Kubernetes' definitions. Inconsistent levels are left out and returned with the reason.
// Schemas without their level are left out silently, because their status reports it.
func (c *Controller) Configure(schemas []*flowcontrolv1.FlowSchema,
	levels []*flowcontrolv1.PriorityLevelConfiguration) (broken map[string]error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	next := map[string]*level{}
	for _, p := range levels {
		if err := c.addLevel(next, p); err != nil {
			if broken == nil {
				broken = map[string]error{}
			}
			broken[p.Name] = err
		}
	}
	for _, p := range bootstrap.MandatoryPriorityLevelConfigurations {
		if next[p.Name] == nil {
			_ = c.addLevel(next, p) // mandatory levels are valid
		}
	}
	c.sort(schemas, next)
	for name, l := range c.levels {
		if next[name] != nil || l.set.Idle() {
			continue
		}
		l.quiescing = true
		next[name] = l
	}
	c.levels = next
	c.divide()
	return broken
}

func (c *Controller) addLevel(next map[string]*level, p *flowcontrolv1.PriorityLevelConfiguration) error {
	config, err := queueConfig(p)
	if err != nil {
		return err
	}
	l := &level{}
	if old := c.levels[p.Name]; old != nil {
		l.levelState = old.levelState
	} else {
		l.levelState = c.newLevel()
	}
	l.configure(p, config)
	next[p.Name] = l
	return nil
}

// sort builds the rules: schemas by precedence, then by name, between the two mandatory ones.
func (c *Controller) sort(schemas []*flowcontrolv1.FlowSchema, levels map[string]*level) {
	good := make([]*flowcontrolv1.FlowSchema, 0, len(schemas)+2)
	names := map[string]bool{}
	for _, s := range schemas {
		if levels[s.Spec.PriorityLevelConfiguration.Name] != nil {
			good = append(good, s)
			names[s.Name] = true
		}
	}
	slices.SortFunc(good, func(a, b *flowcontrolv1.FlowSchema) int {
		if a.Spec.MatchingPrecedence != b.Spec.MatchingPrecedence {
			return int(a.Spec.MatchingPrecedence) - int(b.Spec.MatchingPrecedence)
		}
		return strings.Compare(a.Name, b.Name)
	})
	if !names[flowcontrolv1.FlowSchemaNameExempt] {
		good = slices.Insert(good, 0, bootstrap.MandatoryFlowSchemaExempt)
	}
	if !names[flowcontrolv1.FlowSchemaNameCatchAll] {
		good = append(good, bootstrap.MandatoryFlowSchemaCatchAll)
	}
	made := make([]*schema, 0, len(good))
	kept := map[*class]bool{}
	for _, s := range good {
		one := newSchema(s, levels[s.Spec.PriorityLevelConfiguration.Name])
		made, kept[one.class] = append(made, one), true
	}
	for _, l := range levels {
		maps.DeleteFunc(l.classes, func(_ string, k *class) bool { return !kept[k] })
	}
	c.rules.Store(newRules(made))
}

func newSchema(f *flowcontrolv1.FlowSchema, l *level) *schema {
	k := l.classes[f.Name]
	if k == nil {
		k = newClass(f.Name)
		l.classes[f.Name] = k
	}
	s := &schema{name: f.Name, uid: []string{string(f.UID)}, rules: f.Spec.Rules, level: l, class: k}
	if f.Spec.DistinguisherMethod != nil {
		s.method = f.Spec.DistinguisherMethod.Type
	}
	return s
}

// divide distributes the server's seats among the levels. The caller holds mu.
func (c *Controller) divide() {
	shares := 0.0
	for _, l := range c.levels {
		shares += float64(l.shares)
	}
	c.nominal = 0
	waits := 0
	for _, l := range c.levels {
		l.divide(c.total, shares)
		c.nominal += l.nominal
		waits += l.waits
	}
	for i := range c.kinds {
		c.kinds[i].bounds(c.now(), waits, c.nominal)
	}
	c.balance()
}
