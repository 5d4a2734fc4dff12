-- The laboratory's capsules, and the datagrams of its probe, which have the same UDP port.
--
-- A capsule is a header, a ledger that the emulator fills in on the way, and a body: packed envelopes of URP, a frame of
-- a listed transport, or a datagram without meaning. It does not name its body, which is told by its numbers.

local NAME = "trunkline_capsule"
if package.loaded[NAME] then return package.loaded[NAME] end

local layout = require "trunkline_layout"
local urp = require "trunkline_urp"
local frame = require "trunkline_frame"
local probe = require "trunkline_probe"
local capsule = Proto("tlcp", "Trunkline Capsule")

-- The letters "tl".
local UDP_PORT = 0x746c
local MAGIC, VERSION = "tlcp", 1
-- Octets in front of the body, and hops that the ledger has room for.
local HEADER, HOPS = 272, 8
-- The link of a place that holds several hops.
local MERGED = 0xffff

local DIRECTIONS = { [0] = "forward", [1] = "backward" }
-- RFC 3168 section 5.
local ECN = { [0] = "Not-ECT", [1] = "ECT(1)", [2] = "ECT(0)", [3] = "CE" }
local NS = layout.NANOSECONDS
local UNITS = base.UNIT_STRING

local fields = layout.fields(capsule, "tlcp", {
    { "magic", "string", "Magic" },
    { "version", "uint8", "Version", base.DEC },
    { "direction", "uint8", "Direction", base.DEC, DIRECTIONS },
    { "ecn", "uint8", "ECN", base.DEC, ECN },
    { "band", "uint8", "Priority Band", base.DEC },
    { "path_size", "uint32", "Path Size (octets)", base.DEC },
    { "controls", "uint16", "Control Envelopes", base.DEC },
    { "traffic", "uint16", "Traffic", base.DEC },
    { "flow", "uint32", "Flow", base.DEC },
    { "channel", "uint64", "Channel", base.DEC },
    { "number", "uint64", "Number", base.DEC },
    { "sent", "uint64", "Sent, CLOCK_MONOTONIC", base.DEC + UNITS, NS },
    { "ledger", "none", "Ledger" },
    { "arrival", "uint64", "Arrival at the emulator, CLOCK_MONOTONIC", base.DEC + UNITS, NS },
    { "lateness", "uint64", "Lateness of the emulator", base.DEC + UNITS, NS },
    { "crossed", "uint16", "Hops crossed", base.DEC },
    { "zero", "uint16", "Zero", base.HEX },
    { "hop", "none", "Hop" },
    { "link", "uint16", "Link", base.DEC, { [MERGED] = "several" } },
    { "queue", "uint64", "Queue", base.DEC + UNITS, NS },
    { "transmit", "uint64", "Transmit", base.DEC + UNITS, NS },
    { "propagate", "uint64", "Propagate", base.DEC + UNITS, NS },
    { "path", "uint64", "Time on the path", base.DEC + UNITS, NS },
    { "body", "string", "Body" },
    { "filler", "bytes", "Octets without meaning" },
})

local HEAD = {
    { "version", 1 }, { "direction", 1 }, { "ecn", 1 }, { "band", 1 }, { "path_size", 4 }, { "controls", 2 },
    { "traffic", 2 }, { "flow", 4 }, { "channel", 8 }, { "number", 8 }, { "sent", 8 },
}
local LEDGER = { { "arrival", 8 }, { "lateness", 8 }, { "crossed", 2 }, { "zero", 2 } }
local HOP = { { "link", 2 }, { "queue", 8 }, { "transmit", 8 }, { "propagate", 8 } }
local HOP_OCTETS = 26

-- Whether octets begin with a whole capsule header of this version.
local function is_capsule(tvb)
    if tvb:len() < HEADER or tvb(0, 4):raw() ~= MAGIC or tvb(4, 1):uint() ~= VERSION then return false end
    return DIRECTIONS[tvb(5, 1):uint()] ~= nil and ECN[tvb(6, 1):uint()] ~= nil
end

-- Adds a hop as a subtree. Returns the time that it took.
local function read_hop(reader, index)
    local tree = reader.tree
    local item = tree:add(fields.hop, reader.tvb(reader.at, HOP_OCTETS))
    reader.tree = item
    local hop = reader:read(fields, HOP)
    reader.tree = tree
    local total = hop.queue + hop.transmit + hop.propagate
    local link = hop.link == MERGED and "several links" or "link " .. hop.link
    item:set_text(string.format("Hop %d: %s, %s ns", index, link, tostring(total)))
    return total
end

local function read_ledger(reader)
    local tree = reader.tree
    local item = tree:add(fields.ledger, reader.tvb(reader.at, HEADER - reader.at))
    reader.tree = item
    local ledger = reader:read(fields, LEDGER)
    local total = UInt64(0)
    for index = 1, math.min(ledger.crossed, HOPS) do
        total = total + read_hop(reader, index)
    end
    layout.generated(item:add(fields.path, total))
    reader.tree = tree
end

-- Whether a body is packed envelopes: its numbers are those of the capsule, and it is as long as they say. One that was
-- cut is shorter, and then fills its packet.
local function is_urp(body, head)
    if body:len() < urp.NUMBERS then return false end
    local envelopes, controls = body(0, 2):uint(), body(2, 2):uint()
    local length = urp.NUMBERS + urp.PLACE * controls + envelopes
    return envelopes == head.path_size and controls == head.controls and body:len() <= length
end

-- Adds the body of a capsule, of which there may be the front alone. Returns its protocol and a summary.
local function read_body(body, pinfo, tree, head, is_cut)
    if not is_cut and is_urp(body, head) then return "URP", urp.dissect(body, tree) end
    local header, name = frame.recognise(body, head.path_size)
    if header then return frame.dissect(body, pinfo, tree, header, name) end
    tree:add(fields.filler, body())
    if is_cut then return "CUT", "the front alone" end
    return "DATAGRAM", body:len() .. " octets"
end

local udp_length = Field.new("udp.length")
local UDP_HEADER = 8

-- Whether a payload is not all that its datagram had: cut by the capture, or the front that an ICMP error quotes.
local function cut(tvb)
    local lengths = { udp_length() }
    local length = lengths[#lengths]
    return tvb:reported_len() > tvb:len() or length ~= nil and length.value > UDP_HEADER + tvb:len()
end

local function dissect(tvb, pinfo, parent)
    local tree = parent:add(capsule, tvb(0, HEADER))
    local reader = layout.reader(tvb, 0, HEADER, tree)
    reader:octets(fields.magic, #MAGIC)
    local head = reader:read(fields, HEAD)
    read_ledger(reader)
    local direction, number = DIRECTIONS[head.direction], tostring(head.number)
    local flow = string.format("traffic %d, flow %d, %s %s", head.traffic, head.flow, direction, number)
    tree:append_text(", " .. flow)
    local is_cut = cut(tvb)
    local name, summary = "DATAGRAM", "empty"
    if tvb:len() > HEADER then
        name, summary = read_body(tvb(HEADER):tvb(), pinfo, parent, head, is_cut)
    elseif is_cut then
        name, summary = "CUT", "the front alone"
    end
    layout.generated(tree:add(fields.body, name))
    pinfo.cols.protocol = name
    pinfo.cols.info = summary .. " (" .. flow .. ")"
end

function capsule.dissector(tvb, pinfo, tree)
    if is_capsule(tvb) then
        dissect(tvb, pinfo, tree)
        return tvb:len()
    end
    return probe.dissect(tvb, pinfo, tree)
end

DissectorTable.get("udp.port"):add(UDP_PORT, capsule)

package.loaded[NAME] = capsule
return capsule
