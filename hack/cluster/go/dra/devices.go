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
	model       = "pretended"

	// capacity counts the CPUs of a group.
	capacity = groupDriver + "/cpu"
)

// thing is a device, and the variable of the containers that get it. Claims share one that has CPUs.
type thing struct {
	name       string
	attributes map[resourceapi.QualifiedName]resourceapi.DeviceAttribute
	variable   string
	cpus       cpuset.CPUSet
}

// device is what is published of it.
func (t thing) device() resourceapi.Device {
	made := resourceapi.Device{Name: t.name, Attributes: t.attributes}
	if size := t.cpus.Size(); size > 0 {
		made.AllowMultipleAllocations = new(true)
		amount := resourceapi.DeviceCapacity{Value: *resource.NewQuantity(int64(size), resource.DecimalSI)}
		made.Capacity = map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{capacity: amount}
	}
	return made
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

func words(list string) []string {
	return strings.FieldsFunc(list, func(letter rune) bool { return letter == ',' })
}
