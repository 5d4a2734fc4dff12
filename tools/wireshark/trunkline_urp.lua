-- URP, the Universal Receiver Protocol of Datakit: envelopes packed into a datagram.
--
-- The number of envelopes, that of the controls among them, the places of the controls, then an octet for each envelope.
-- Data at the front that had no room are left out. What the controls mean is in the 8th edition of the Unix system.

local NAME = "trunkline_urp"
if package.loaded[NAME] then return package.loaded[NAME] end

local layout = require "trunkline_layout"
local urp = Proto("urp", "Universal Receiver Protocol")

-- The most envelopes of a packet: a full block of 4096 octets, its trailer and its check sum.
local MOST = 4096 + 9
-- Octets of the two numbers in front, and of each place.
local NUMBERS, PLACE = 4, 2
-- Octets of a trailer's length, of a check sum, and of express data.
local LENGTH, CRC, EXPRESS = 2, 4, 2

local fields = layout.fields(urp, "urp", {
    { "envelopes", "uint16", "Envelopes", base.DEC },
    { "controls", "uint16", "Control Envelopes", base.DEC },
    { "place", "uint16", "Place of a Control", base.DEC },
    { "left_out", "uint16", "Data that the datagram has no room for (octets)", base.DEC },
    { "data", "bytes", "Data" },
    { "control", "uint8", "Control", base.HEX },
    { "name", "string", "Name" },
    { "seq", "uint8", "Sequence Number", base.DEC },
    { "trailer", "none", "Trailer" },
    { "block_length", "uint16", "Block Length (octets and user controls)", base.DEC },
    { "crc", "uint32", "Check Sum", base.HEX },
    { "express", "bytes", "Express Data" },
})

local expert = {
    numbers = ProtoExpert.new("urp.numbers.wrong", "The numbers of envelopes do not agree with the octets",
        expert.group.MALFORMED, expert.severity.ERROR),
    places = ProtoExpert.new("urp.places.wrong", "The places of the controls are not in order",
        expert.group.MALFORMED, expert.severity.ERROR),
}
urp.experts = { expert.numbers, expert.places }

-- Controls that stand for themselves.
local NAMES = {
    [0x00] = "NUL", [0x28] = "BOT", [0x29] = "BOTM", [0x2a] = "BOTS", [0x2b] = "SOI", [0x2c] = "EOI", [0x2d] = "ENQ",
    [0x2e] = "CHECK", [0x2f] = "INITREQ", [0x30] = "INIT0", [0x31] = "INIT1", [0x32] = "AINIT", [0x48] = "BREAK",
    [0x78] = "CRC",
}
local BOT, BOTS, SOI, EOI, CRC_MARK = 0x28, 0x2a, 0x2b, 0x2c, 0x78
-- Eight controls with a sequence number from each of these on.
local NUMBERED = { [0x08] = "SEQ", [0x10] = "ECHO", [0x18] = "REJ", [0x20] = "ACK" }
-- Controls of the users.
local FIRST_USER, LAST_USER = 0x40, 0x7f

-- The name of a control, and its sequence number if it has one.
local function named(octet)
    local numbered = NUMBERED[octet - octet % 8]
    if numbered then return numbered, octet % 8 end
    if NAMES[octet] then return NAMES[octet] end
    if octet >= FIRST_USER and octet <= LAST_USER then return "USER" end
    return "unknown"
end

-- The envelopes of `tvb` in their order: runs of data and single controls, each { at, count, octet of a control }.
local function runs(reader, places, left_out)
    local list, at, place = {}, reader.at, left_out
    local function data(count)
        if count > 0 then list[#list + 1] = { at = at, count = count } end
        at, place = at + count, place + count
    end
    for _, control in ipairs(places) do
        data(control - place)
        list[#list + 1] = { at = at, count = 1, control = reader.tvb(at, 1):uint() }
        at, place = at + 1, place + 1
    end
    data(reader.limit - at)
    return list
end

local function add_control(tree, tvb, run)
    local name, seq = named(run.control)
    local range = tvb(run.at, 1)
    local item = tree:add(fields.control, range)
    item:append_text(" (" .. name .. (seq and " " .. seq or "") .. ")")
    layout.generated(item:add(fields.name, name))
    if seq then layout.generated(item:add(fields.seq, range, seq)) end
    return name .. (seq and " " .. seq or "")
end

-- Whether the run at `index` is data of `count` octets, and the one behind it a control that `is` says yes to.
local function follows(list, index, count, is)
    local data, control = list[index], list[index + 1]
    return data and not data.control and data.count == count and control and control.control and is(control.control)
end

local function is_seq(octet)
    return NUMBERED[octet - octet % 8] == "SEQ"
end

local function is_begin(octet)
    return octet >= BOT and octet <= BOTS
end

local function is_end_of_express(octet)
    return octet == EOI
end

-- Adds begin, length and number as a subtree. Returns a summary and the runs that they take.
local function add_trailer(tree, tvb, list, index)
    local first, length, last = list[index], list[index + 1], list[index + 2]
    local item = tree:add(fields.trailer, tvb(first.at, 2 + LENGTH))
    add_control(item, tvb, first)
    local octets = tvb(length.at, LENGTH)
    item:add_le(fields.block_length, octets)
    add_control(item, tvb, last)
    local text = string.format("%s %d octets, SEQ %d", named(first.control), octets:le_uint(), last.control % 8)
    item:set_text("Trailer: " .. text)
    return text, 3
end

-- Adds a check sum, which stands in front of a trailer.
local function add_crc(tree, tvb, list, index)
    add_control(tree, tvb, list[index])
    tree:add_le(fields.crc, tvb(list[index + 1].at, CRC))
    return "CRC", 2
end

local function add_express(tree, tvb, list, index)
    add_control(tree, tvb, list[index])
    tree:add(fields.express, tvb(list[index + 1].at, EXPRESS))
    add_control(tree, tvb, list[index + 2])
    return "express data", 3
end

-- Adds what begins with the run at `index`. Returns a summary and the number of runs that it takes.
local function add_run(tree, tvb, list, index)
    local run = list[index]
    local octet = run.control
    if not octet then
        tree:add(fields.data, tvb(run.at, run.count))
        return run.count .. " octets", 1
    end
    if is_begin(octet) and follows(list, index + 1, LENGTH, is_seq) then
        return add_trailer(tree, tvb, list, index)
    elseif octet == CRC_MARK and follows(list, index + 1, CRC, is_begin) then
        return add_crc(tree, tvb, list, index)
    elseif octet == SOI and follows(list, index + 1, EXPRESS, is_end_of_express) then
        return add_express(tree, tvb, list, index)
    end
    return add_control(tree, tvb, run), 1
end

-- The places of the controls; nil if they are not in order, or one is among what is left out or behind the end.
local function read_places(reader, values, left_out)
    local places, next_place = {}, left_out
    for index = 1, values.controls do
        local place = reader:field(fields.place, PLACE)
        if place < next_place or place >= values.envelopes then return nil end
        places[index], next_place = place, place + 1
    end
    return places
end

-- The octets of data that are left out; nil if the numbers do not agree with the octets.
local function left_out_of(values, length)
    if values.envelopes > MOST then return nil end
    local left_out = NUMBERS + PLACE * values.controls + values.envelopes - length
    if left_out < 0 or left_out > values.envelopes - values.controls then return nil end
    return left_out
end

-- Adds the envelopes of `tvb` to `tree`. Returns a summary.
local function dissect(tvb, parent)
    local tree = parent:add(urp, tvb())
    local reader = layout.reader(tvb, 0, tvb:len(), tree)
    local values = reader:read(fields, { { "envelopes", 2 }, { "controls", 2 } })
    local left_out = values and left_out_of(values, tvb:len())
    if not left_out then
        tree:add_proto_expert_info(expert.numbers)
        return "wrong numbers of envelopes"
    end
    if left_out > 0 then layout.generated(tree:add(fields.left_out, left_out)) end
    local places = read_places(reader, values, left_out)
    if not places then
        tree:add_proto_expert_info(expert.places)
        return "wrong places of controls"
    end
    local list, summaries, index = runs(reader, places, left_out), {}, 1
    while index <= #list do
        local summary, taken = add_run(tree, tvb, list, index)
        summaries[#summaries + 1] = summary
        index = index + taken
    end
    tree:append_text(string.format(", %d envelopes", values.envelopes))
    return table.concat(summaries, ", ")
end

function urp.dissector(tvb, pinfo, tree)
    pinfo.cols.protocol = "URP"
    pinfo.cols.info = dissect(tvb, tree)
    return tvb:len()
end

local module = { dissect = dissect, NUMBERS = NUMBERS, PLACE = PLACE }
package.loaded[NAME] = module
return module
