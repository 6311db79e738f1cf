package main

import (
	"fmt"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/cpuset"
)

const (
	gpuDriver   = "gpu.local-cluster"
	cpuDriver   = "cpu.local-cluster"
	groupDriver = "group.local-cluster"
	cardDriver  = "card.local-cluster"
	model       = "pretended"

	// capacity counts the CPUs of a group.
	capacity = groupDriver + "/cpu"

	// slots are how many of the smallest parts a card can be divided into.
	slots = 4
)

// thing is a device, and the variable of the containers that get it. Claims share one that has CPUs. A part of a card
// takes slots of it, which other parts take as well: of these only one can be made at a time.
type thing struct {
	name       string
	attributes map[resourceapi.QualifiedName]resourceapi.DeviceAttribute
	variable   string
	cpus       cpuset.CPUSet
	card       string
	slots      []string
}

// device is what is published of it.
func (t thing) device() resourceapi.Device {
	made := resourceapi.Device{Name: t.name, Attributes: t.attributes}
	if size := t.cpus.Size(); size > 0 {
		made.AllowMultipleAllocations = new(true)
		amount := resourceapi.DeviceCapacity{Value: *resource.NewQuantity(int64(size), resource.DecimalSI)}
		made.Capacity = map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{capacity: amount}
	}
	if len(t.slots) > 0 {
		consumed := resourceapi.DeviceCounterConsumption{CounterSet: t.card, Counters: counters(t.slots)}
		made.ConsumesCounters = []resourceapi.DeviceCounterConsumption{consumed}
	}
	return made
}

// holds are what no two claims may have at once, for a device that is not shared.
func (t thing) holds() []string {
	if len(t.slots) == 0 {
		return []string{t.name}
	}
	var names []string
	for _, slot := range t.slots {
		names = append(names, t.card+"-"+slot)
	}
	return names
}

// counters have one of each slot.
func counters(slots []string) map[string]resourceapi.Counter {
	found := make(map[string]resourceapi.Counter)
	for _, slot := range slots {
		found[slot] = resourceapi.Counter{Value: *resource.NewQuantity(1, resource.DecimalSI)}
	}
	return found
}

func number(value int) resourceapi.DeviceAttribute {
	return resourceapi.DeviceAttribute{IntValue: new(int64(value))}
}

func word(value string) resourceapi.DeviceAttribute {
	return resourceapi.DeviceAttribute{StringValue: new(value)}
}

// half tells on which of two NUMA nodes one of so many is.
func half(index, of int) int { return index * 2 / of }

// gpus are whole ones, and then the slices of one more, which is nothing but its slices; all are numbered on.
func gpus(node string, whole int, slices []string) []thing {
	var found []thing
	for index := range whole {
		uuid := fmt.Sprintf("GPU-%s-%d", node, index)
		found = append(found, thing{
			name: fmt.Sprintf("gpu-%d", index),
			attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
				"type":  word("gpu"),
				"index": number(index),
				"uuid":  word(uuid),
				"model": word(model),
				"numa":  number(half(index, whole)),
			},
			variable: fmt.Sprintf("GPU_DEVICE_%d=%s", index, uuid),
		})
	}
	for place, profile := range slices {
		index := whole + place
		uuid := fmt.Sprintf("MIG-%s-%d", node, index)
		found = append(found, thing{
			name: fmt.Sprintf("mig-%d", index),
			attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
				"type":    word("mig"),
				"index":   number(index),
				"uuid":    word(uuid),
				"model":   word(model),
				"profile": word(profile),
				"parent":  word(fmt.Sprintf("GPU-%s-%d", node, whole)),
			},
			variable: fmt.Sprintf("MIG_DEVICE_%d=%s", index, uuid),
		})
	}
	return found
}

// cpus have one thread in each core, and one socket.
func cpus(node string, count int) []thing {
	var found []thing
	for id := range count {
		found = append(found, thing{
			name: fmt.Sprintf("cpu-%d", id),
			attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
				"cpuID":      number(id),
				"coreID":     number(id),
				"socketID":   number(0),
				"numaNodeID": number(half(id, count)),
			},
			variable: fmt.Sprintf("CPU_DEVICE_%d=CPU-%s-%d", id, node, id),
		})
	}
	return found
}

// groups are the same CPUs by their NUMA nodes, as a driver publishes them that is told which of them a claim gets.
func groups(count int) []thing {
	members := make([][]int, 2)
	for id := range count {
		members[half(id, count)] = append(members[half(id, count)], id)
	}
	var found []thing
	for numa, there := range members {
		if len(there) == 0 {
			continue
		}
		cpus := cpuset.New(there...)
		found = append(found, thing{
			name: fmt.Sprintf("numa-%d", numa),
			attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
				"cpuIDs":                          word(cpus.String()),
				"smtLayout":                       word(fmt.Sprintf("0-%d", count-1)),
				"socketID":                        number(0),
				"resource.kubernetes.io/numaNode": number(numa),
			},
			cpus: cpus,
		})
	}
	return found
}

// parts are all that could be made of cards: four quarters, two halves, or the whole.
func parts(node string, cards int) []thing {
	var found []thing
	for index := range cards {
		card := fmt.Sprintf("card-%d", index)
		for _, size := range []int{1, 2, slots} {
			profile := fmt.Sprintf("%dg", size)
			for place := range slots / size {
				name := fmt.Sprintf("%s-%s-%d", card, profile, place)
				found = append(found, thing{
					name: name,
					attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
						"card":    number(index),
						"profile": word(profile),
						"uuid":    word(fmt.Sprintf("CARD-%s-%d-%s-%d", node, index, profile, place)),
					},
					variable: fmt.Sprintf("CARD_DEVICE_%d=CARD-%s-%d", index, node, index),
					card:     card,
					slots:    slotNames()[place*size : (place+1)*size],
				})
			}
		}
	}
	return found
}

// counterSets are what the parts of each card share.
func counterSets(things []thing) []resourceapi.CounterSet {
	var found []resourceapi.CounterSet
	for _, one := range things {
		if one.card != "" && (len(found) == 0 || found[len(found)-1].Name != one.card) {
			found = append(found, resourceapi.CounterSet{Name: one.card, Counters: counters(slotNames())})
		}
	}
	return found
}

func slotNames() []string {
	var names []string
	for slot := range slots {
		names = append(names, fmt.Sprintf("slot-%d", slot))
	}
	return names
}

func words(list string) []string {
	return strings.FieldsFunc(list, func(letter rune) bool { return letter == ',' })
}
